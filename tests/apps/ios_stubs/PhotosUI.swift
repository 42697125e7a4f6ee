@_exported import UIKit
@_exported import SwiftUI
public struct PHPickerFilter: Equatable, Hashable, Sendable { public static let images = PHPickerFilter() }
public struct PhotosPickerItem: Equatable, Hashable, Sendable {
    public struct EncodingDisambiguationPolicy: Equatable, Hashable, Sendable { public static let automatic = Self(), current = Self(), compatible = Self() }
    public func loadTransferable<T: Transferable>(type: T.Type) async throws -> T? { nil }
}
extension View {
    nonisolated public func photosPicker(isPresented: Binding<Bool>, selection: Binding<PhotosPickerItem?>, matching filter: PHPickerFilter? = nil,
        preferredItemEncoding: PhotosPickerItem.EncodingDisambiguationPolicy = .automatic) -> some View { self }
}
